"""What is said when something goes wrong: ``errors`` is the door."""
