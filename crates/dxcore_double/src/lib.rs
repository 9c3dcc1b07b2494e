//! A dxcore.dll that plays the adapters of an inventory, for runs under Wine.
