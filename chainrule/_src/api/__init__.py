"""What users call: functions made from rows, declarations of operations, Array, tensors made from data."""
