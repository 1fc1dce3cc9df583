"""The mathematics of the host kernels: functions that become machine code. Imported only to be compiled."""
