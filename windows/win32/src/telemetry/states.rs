//! The states that `DXCore` reports for an adapter, converted from the bytes of
//! `IDXCoreAdapter::QueryState`.
//!
//! The numbers of the states and the layouts are those of `dxcore_interface.h`. The states from 2
//! on are newer than the interface itself, so each query may be unsupported. Only the first
//! physical adapter of linked adapters is read.

use std::time::Duration;

use devices::{EngineKind, EngineTelemetry, MemoryUse, Telemetry};

use super::kernel::EngineDescription;

const MEMORY_USAGE: u32 = 2;
const ENGINE_RUNNING_TIME: u32 = 4;
const TEMPERATURE: u32 = 6;
const ENGINE_FREQUENCY: u32 = 9;
const MEMORY_FREQUENCY: u32 = 10;

/// The property with the size of each kind of memory.
const DEDICATED_ADAPTER_MEMORY: u32 = 7;
const SHARED_SYSTEM_MEMORY: u32 = 9;

/// `DXCoreMemoryType`.
const DEDICATED: u32 = 0;
const SHARED: u32 = 1;

const FIRST_PHYSICAL_ADAPTER: u32 = 0;

/// The most engines that are looked for where the graphics kernel does not report their number.
const MAX_UNLISTED_ENGINES: u32 = 64;

/// The queries of one adapter. One that is unsupported or fails returns `None`.
pub(crate) trait AdapterQueries {
    /// The state with this number.
    fn state<const N: usize>(&self, state: u32, input: &[u8]) -> Option<[u8; N]>;
    /// The 64-bit property with this number.
    fn number(&self, property: u32) -> Option<u64>;
}

/// Reads what `DXCore` reports. `engines` describes the engines; without it, engines are those
/// whose running time can be read.
pub(crate) fn read(adapter: &impl AdapterQueries, engines: &[EngineDescription]) -> Telemetry {
    Telemetry {
        engines: read_engines(adapter, engines),
        dedicated: memory(adapter, DEDICATED, DEDICATED_ADAPTER_MEMORY),
        shared: memory(adapter, SHARED, SHARED_SYSTEM_MEMORY),
        temperature_celsius: temperature(adapter),
        engine_hertz: hertz(
            adapter,
            ENGINE_FREQUENCY,
            &[FIRST_PHYSICAL_ADAPTER, EngineDescription::main(engines)],
        ),
        memory_hertz: hertz(adapter, MEMORY_FREQUENCY, &[FIRST_PHYSICAL_ADAPTER]),
        ..Telemetry::default()
    }
}

/// The engines; none if the running time of one of them cannot be read, because the kernel then
/// reports all of them.
fn read_engines(
    adapter: &impl AdapterQueries,
    engines: &[EngineDescription],
) -> Vec<EngineTelemetry> {
    if engines.is_empty() {
        let unknown = EngineDescription { kind: EngineKind::Other, name: None };
        let all = (0..MAX_UNLISTED_ENGINES).map_while(|index| engine(adapter, index, &unknown));
        return all.collect();
    }
    let all = (0..).zip(engines).map(|(index, description)| engine(adapter, index, description));
    all.collect::<Option<_>>().unwrap_or_default()
}

fn engine(
    adapter: &impl AdapterQueries,
    index: u32,
    description: &EngineDescription,
) -> Option<EngineTelemetry> {
    // `DXCoreEngineQueryOutput`: the time in microseconds, and whether a process was found,
    // which this query has not.
    let input = dwords(&[FIRST_PHYSICAL_ADAPTER, index]);
    let output = adapter.state::<16>(ENGINE_RUNNING_TIME, &input)?;
    Some(description.engine(index, Duration::from_micros(number(&output, 0))))
}

fn memory(adapter: &impl AdapterQueries, kind: u32, size: u32) -> Option<MemoryUse> {
    // `DXCoreMemoryUsage`: committed and resident bytes.
    let input = dwords(&[FIRST_PHYSICAL_ADAPTER, kind]);
    let output = adapter.state::<16>(MEMORY_USAGE, &input)?;
    Some(MemoryUse { used_bytes: number(&output, 8), budget_bytes: adapter.number(size) })
}

fn temperature(adapter: &impl AdapterQueries) -> Option<f64> {
    let output = adapter.state::<4>(TEMPERATURE, &dwords(&[FIRST_PHYSICAL_ADAPTER]))?;
    let celsius = f32::from_le_bytes(output);
    // A driver without a sensor reports 0.
    (celsius.is_finite() && celsius != 0.0).then_some(f64::from(celsius))
}

/// A frequency: the first number of `DXCoreFrequencyQueryOutput`. A driver that does not know it
/// reports 0.
fn hertz(adapter: &impl AdapterQueries, state: u32, input: &[u32]) -> Option<u64> {
    let output = adapter.state::<24>(state, &dwords(input))?;
    Some(number(&output, 0)).filter(|hertz| *hertz != 0)
}

fn dwords(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The 64-bit number at `offset`.
fn number(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| bytes[offset + byte]))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// States by number and input, and properties by number.
    #[derive(Default)]
    struct Made {
        states: BTreeMap<(u32, Vec<u8>), Vec<u8>>,
        properties: BTreeMap<u32, u64>,
    }

    impl Made {
        fn with(mut self, state: u32, input: &[u32], output: &[u8]) -> Made {
            self.states.insert((state, dwords(input)), output.to_vec());
            self
        }
    }

    impl AdapterQueries for Made {
        fn state<const N: usize>(&self, state: u32, input: &[u8]) -> Option<[u8; N]> {
            let bytes = self.states.get(&(state, input.to_vec()))?;
            Some(bytes.as_slice().try_into().expect("the output has the size of the header"))
        }

        fn number(&self, property: u32) -> Option<u64> {
            self.properties.get(&property).copied()
        }
    }

    fn numbers(values: &[u64]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn described(kinds: &[EngineKind]) -> Vec<EngineDescription> {
        kinds.iter().map(|kind| EngineDescription { kind: *kind, name: None }).collect()
    }

    #[test]
    fn every_state_is_converted_from_the_layout_of_the_header() {
        let mut adapter = Made::default()
            .with(2, &[0, 0], &numbers(&[99, 3 << 20]))
            .with(2, &[0, 1], &numbers(&[98, 4096]))
            .with(4, &[0, 0], &numbers(&[1_500_000, 1]))
            .with(4, &[0, 1], &numbers(&[7, 0]))
            .with(6, &[0], &61.5_f32.to_le_bytes())
            .with(9, &[0, 1], &numbers(&[1_590_000_000, 2, 3]))
            .with(10, &[0], &numbers(&[5_000_000_000, 2, 3]));
        adapter.properties = [(7, 16 << 30)].into();
        let telemetry = read(&adapter, &described(&[EngineKind::Copy, EngineKind::ThreeD]));
        let engine = |index, kind, micros| EngineTelemetry {
            index,
            kind,
            name: None,
            running_time: Duration::from_micros(micros),
        };
        let expected = Telemetry {
            engines: vec![engine(0, EngineKind::Copy, 1_500_000), engine(1, EngineKind::ThreeD, 7)],
            dedicated: Some(MemoryUse { used_bytes: 3 << 20, budget_bytes: Some(16 << 30) }),
            shared: Some(MemoryUse { used_bytes: 4096, budget_bytes: None }),
            temperature_celsius: Some(61.5),
            engine_hertz: Some(1_590_000_000),
            memory_hertz: Some(5_000_000_000),
            ..Telemetry::default()
        };
        assert_eq!(telemetry, expected);
    }

    #[test]
    fn unsupported_states_and_missing_sensors_have_no_value() {
        assert_eq!(read(&Made::default(), &[]), Telemetry::default());
        for celsius in [0.0, f32::NAN, f32::INFINITY] {
            let adapter = Made::default()
                .with(6, &[0], &celsius.to_le_bytes())
                .with(9, &[0, 0], &[0; 24])
                .with(10, &[0], &[0; 24]);
            assert_eq!(read(&adapter, &[]), Telemetry::default(), "{celsius}");
        }
    }

    #[test]
    fn without_descriptions_engines_are_those_that_have_a_running_time() {
        let adapter = Made::default()
            .with(4, &[0, 0], &numbers(&[1, 0]))
            .with(4, &[0, 1], &numbers(&[2, 0]))
            .with(4, &[0, 3], &numbers(&[4, 0]));
        let engines = read(&adapter, &[]).engines;
        let times: Vec<_> = engines.iter().map(|e| (e.index, e.running_time.as_micros())).collect();
        assert_eq!(times, [(0, 1), (1, 2)]);
        // One of three described engines fails: none, so that the kernel reports all of them.
        let three = described(&[EngineKind::Other; 3]);
        assert_eq!(read(&adapter, &three).engines, []);
    }
}
