//! A GPU as NVML reports it, and its PCI address.

/// A PCI address without the function number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PciAddress {
    /// The segment, which NVML calls domain. 0 on most hosts.
    pub(crate) segment: u32,
    /// The bus, 0 to 255.
    pub(crate) bus: u32,
    /// The device on the bus, 0 to 31.
    pub(crate) device: u32,
}

impl PciAddress {
    /// Converts `DEVPKEY_Device_BusNumber`, which holds the segment in bits 8 to 23
    /// (`PCI_SEGMENT_BUS_NUMBER`, ntddk.h), and `DEVPKEY_Device_Address`, which holds
    /// the device in its high and the function in its low 16 bits.
    pub(crate) fn from_properties(bus_number: u32, address: u32) -> Self {
        Self { segment: bus_number >> 8 & 0xFFFF, bus: bus_number & 0xFF, device: address >> 16 }
    }
}

/// A GPU as NVML reports it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Gpu {
    pub(crate) address: PciAddress,
    /// `GPU-` and a UUID.
    pub(crate) uuid: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_contain_segment_bus_and_device() {
        let address = |segment, bus, device| PciAddress { segment, bus, device };
        assert_eq!(PciAddress::from_properties(0x1B, 0x0003_0000), address(0, 0x1B, 3));
        assert_eq!(PciAddress::from_properties(0xFF12_3402, 1), address(0x1234, 2, 0));
    }
}
