"""Reading cubins and fatbins, writing cubins and launch descriptors."""
