"""Every method and every experiment of the paper: data sets, suites, a runner that can be stopped, and reports."""
