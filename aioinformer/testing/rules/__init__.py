"""What the server sets in objects and refuses, besides what their schemas tell."""
