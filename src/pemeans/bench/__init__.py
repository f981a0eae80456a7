"""Every method and every experiment of the paper: data sets, suites, a runner, and reports."""
