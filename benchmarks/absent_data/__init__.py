"""Whether answers say so when the data do not have what a question asks for."""
