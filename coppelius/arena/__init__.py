"""Where each image lies: placement in table order, and the manifest that says so."""
