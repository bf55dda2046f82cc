//! Files made by hand.
