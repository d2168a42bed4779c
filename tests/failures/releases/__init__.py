"""The website operator in three releases."""
