"""The procedure on finite data: iteration, and exact regression."""
