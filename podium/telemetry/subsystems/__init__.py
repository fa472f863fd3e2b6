"""The families of metrics of each part of the scheduler, and the methods that record them."""
