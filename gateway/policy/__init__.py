"""What platform teams write in YAML: model, loader, rules."""
