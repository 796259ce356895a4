"""An objective of your own: the last layer of the encoder is to stay near the first."""
