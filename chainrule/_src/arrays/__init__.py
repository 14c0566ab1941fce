"""Data: dtypes, promotion, sizes, devices, printing, arrays of other libraries, trees."""
