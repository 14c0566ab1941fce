"""What is said when something goes wrong, and where the user's program is."""
