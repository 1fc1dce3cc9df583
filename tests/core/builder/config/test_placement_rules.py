import pytest
from tests.core.builder.networks import activation, chain, convolution, dla_config, image_network, named

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.layer_rules import PlacementRules
from dryfit.errors import ConfigError


def placed(network, text):
    """Layer name to its own device, under the rules of a text."""
    config = BuilderConfig()
    PlacementRules.parse(text).apply(network, config)
    return config.explicit_device_types(network)


def refusal(network, text):
    config = BuilderConfig()
    with pytest.raises(ConfigError) as error:
        PlacementRules.parse(text, "rules.txt").apply(network, config)
    assert config.explicit_device_types(network) == {}
    assert "rules.txt" in str(error.value)
    return str(error.value)


def test_the_last_rule_that_fits_a_layer_wins():
    network = chain("c", "r", "c", "r")
    devices = placed(network, "* = DLA\nr* = GPU\nr3 = dla")
    assert devices == {"c0": "DLA", "r1": "GPU", "c2": "DLA", "r3": "DLA"}
    assert placed(network, "r3 = dla\nr* = GPU") == {"r1": "GPU", "r3": "GPU"}


def test_layers_that_no_rule_fits_keep_the_device_that_they_had():
    network = chain("c", "r", "e")
    config = dla_config()
    config.set_device_type(network.layer("e2"), "CPU")
    PlacementRules.parse("c0 = GPU").apply(network, config)
    assert config.explicit_device_types(network) == {"c0": "GPU", "e2": "CPU"}
    assert config.get_device_type(network.layer("r1")) == "DLA"


def test_rules_speak_of_kinds_and_of_onnx_nodes():
    network = chain("c", "r", "c")
    network.layer("c2").onnx_nodes = ("Conv_7", "BatchNormalization_8")
    assert placed(network, "kind:convolution = DLA") == {"c0": "DLA", "c2": "DLA"}
    assert placed(network, "onnx:BatchNormalization_8 = DLA") == {"c2": "DLA"}
    assert placed(network, "onnx:Conv_* = DLA\nkind:activ* = GPU") == {"r1": "GPU", "c2": "DLA"}


def test_a_question_mark_is_one_character_and_brackets_are_plain():
    network, x = image_network()
    for name in ("conv1", "conv12", "[conv]"):
        x = activation(network, x, name)
    assert placed(network, "conv? = DLA") == {"conv1": "DLA"}
    assert placed(network, "[conv] = DLA") == {"[conv]": "DLA"}


def test_a_name_that_has_a_star_means_itself_alone():
    network, x = image_network()
    x = activation(network, x, "(Unnamed Layer* 1) [Activation]")
    activation(network, x, "(Unnamed Layer* 2) + (Unnamed Layer* 1) [Activation]")
    assert list(placed(network, "(Unnamed Layer* 1) [Activation] = DLA")) == ["(Unnamed Layer* 1) [Activation]"]
    assert len(placed(network, "(Unnamed Layer* = DLA".replace(" =", "* ="))) == 2


def test_names_may_have_colons_equals_signs_and_hashes():
    network, x = image_network()
    for name in ("block/relu:0", "a=b", "c#1"):
        x = activation(network, x, name)
    text = "block/relu:0 = DLA  # the first\na=b = GPU\n# nothing\n\nc#1=CPU"
    assert placed(network, text) == {"block/relu:0": "DLA", "a=b": "GPU", "c#1": "CPU"}


def test_lines_that_are_no_rules_are_listed_together():
    with pytest.raises(ConfigError) as error:
        PlacementRules.parse("conv1\n* = DLA\n= GPU\nconv2 =", "rules.txt")
    assert error.value.where == "rules.txt"
    assert error.value.found == "line 1: conv1; line 3: = GPU; line 4: conv2 ="
    assert "pattern = DEVICE" in error.value.allowed


def test_everything_that_does_not_exist_is_told_at_once_with_what_is_close():
    message = refusal(chain("c", "r"), "co = DLA\nc0x = GPU\nc0 = DLAA\nkind:convolutio = GPU\nonnx:Conv_1 = GPU")
    assert "line 1: Unknown layer 'co'" in message
    assert "line 2: Unknown layer 'c0x'. Did you mean 'c0'?" in message
    assert "line 3: Unknown device: 'DLAA'" in message
    assert "Did you mean 'DLA'?" in message
    assert "line 4: Unknown layer kind 'convolutio'. Did you mean 'convolution'?" in message
    assert "line 5: Unknown ONNX node 'Conv_1'" in message


def test_a_pattern_that_fits_nothing_is_refused():
    network = chain("c", "r")
    assert "No layer matches 'stem*'" in refusal(network, "stem* = DLA")
    message = refusal(network, "kind:softmax = GPU")
    assert "The network has no layer of the kind 'softmax', it has activation, convolution" in message


def test_trtexecs_spelling_splits_at_commas_and_the_last_colon():
    network, x = image_network()
    x = convolution(network, x, "conv:0")
    for name in ("relu1", "relu2"):
        x = named(activation(network, x, f"{name}_raw").producer, name)
    config = BuilderConfig()
    PlacementRules.parse_layer_device_types("relu*:GPU,conv:0:DLA,'relu2':DLA").apply(network, config)
    assert config.explicit_device_types(network) == {"conv:0": "DLA", "relu1": "GPU", "relu2": "DLA"}


def test_an_entry_without_a_device_is_no_rule_in_trtexecs_spelling():
    with pytest.raises(ConfigError) as error:
        PlacementRules.parse_layer_device_types("relu,conv:DLA")
    assert error.value.found == "'relu': relu"
    assert error.value.allowed == "NAME:DEVICE,..."


def test_a_mapping_is_rules_in_its_order():
    network = chain("c", "r")
    config = BuilderConfig()
    PlacementRules.from_mapping({"*": "DLA", "r1": "GPU"}).apply(network, config)
    assert config.explicit_device_types(network) == {"c0": "DLA", "r1": "GPU"}
