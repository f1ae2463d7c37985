"""What can be bought: offerings and prices, with their sources."""
