"""Plain numpy in float64: what each kernel must compute.  Imports only numpy."""
