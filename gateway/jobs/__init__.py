"""Jobs API rules without HTTP or Redis commands: creation, results, finishing, putting back."""
