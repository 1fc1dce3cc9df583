"""Which layer runs on which device, and the segments that follow."""
