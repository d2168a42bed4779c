"""Reading and changing objects by the rules: the layer between HTTP, controllers and storage."""
