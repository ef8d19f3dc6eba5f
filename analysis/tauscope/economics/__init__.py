"""What a cycle costs, what it wins, and why speculation pays or does not."""
