"""Functions that convert units."""


def inches_to_cm(inches: float) -> float:
    """Convert inches to centimetres."""
    return inches * 2.54
