"""Where theory and learner meet: densities whose smoothness is chosen by evidence."""
