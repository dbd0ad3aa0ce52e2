"""Every suite of the project; its folders mirror src."""
