"""tauscope: traces of speculative decoding in ds4, and what they mean."""

__version__ = "0.1.0"
