"""Data: dtypes, promotion, sizes, devices, printing, other libraries' arrays, trees."""
