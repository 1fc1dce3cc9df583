# The public names of `dryfit.testing`, written by `make docs` from the table in `__init__.py`.

from dryfit.testing.calibrator_conformance import CalibratorConformance as CalibratorConformance
from dryfit.testing.layer_plugin_conformance import LayerPluginConformance as LayerPluginConformance
from dryfit.testing.operator_cases.case_table import trial_cases as trial_cases
from dryfit.testing.operator_cases.operator_case import OperatorCase as OperatorCase
from dryfit.testing.operator_cases.operator_case import case_of as case_of
from dryfit.testing.quantize_method_conformance import QuantizeMethodConformance as QuantizeMethodConformance
from dryfit.testing.target_conformance import TargetConformance as TargetConformance
from dryfit.testing.target_conformance import TargetIntegerNetworks as TargetIntegerNetworks
from dryfit.testing.target_conformance import TargetMemoryPools as TargetMemoryPools
from dryfit.testing.target_conformance import TargetNetworks as TargetNetworks
from dryfit.testing.target_conformance import TargetSegments as TargetSegments
from dryfit.testing.target_declaration import TargetArithmetic as TargetArithmetic
from dryfit.testing.target_declaration import TargetDeclaration as TargetDeclaration
from dryfit.testing.target_declaration import TargetFormats as TargetFormats
from dryfit.testing.target_kernels import TargetKernels as TargetKernels
from dryfit.testing.target_limits import TargetLimits as TargetLimits
