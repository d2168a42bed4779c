// Go lets a package link to functions by name if it has an assembly file.
