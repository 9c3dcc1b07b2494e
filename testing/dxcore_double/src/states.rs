//! The bytes that `QueryState` returns for the states of an adapter that change all the time,
//! in the documented layout.

use std::collections::BTreeMap;
use std::str::FromStr;

use devices::Luid;

/// The states that an adapter supports, with their values.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct States {
    /// The running time of each engine in microseconds.
    engines: Vec<u64>,
    /// Bytes of dedicated memory in use.
    dedicated: Option<u64>,
    /// Bytes of shared memory in use.
    shared: Option<u64>,
    celsius: Option<f32>,
    engine_hertz: Option<u64>,
    memory_hertz: Option<u64>,
}

/// The result of querying a state.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StateValue {
    /// The value.
    Bytes(Vec<u8>),
    /// The input has a wrong size, or names something that does not exist.
    InvalidInput,
    /// The adapter does not support the state.
    NotSupported,
}

impl States {
    /// Reads the states of each adapter, such as
    /// `7:engines=1000+20,dedicated=4096,shared=1,celsius=61.5,engine-hertz=9,memory-hertz=9;-8:`.
    pub(crate) fn read_all(text: &str) -> Result<BTreeMap<Luid, States>, String> {
        let adapters = text.split(';').filter(|adapter| !adapter.is_empty());
        adapters
            .map(|adapter| {
                let (luid, states) =
                    adapter.split_once(':').ok_or_else(|| format!("missing `:` in `{adapter}`"))?;
                Ok((Luid(number(luid)?), States::read(states)?))
            })
            .collect()
    }

    fn read(text: &str) -> Result<States, String> {
        let mut states = States::default();
        for item in text.split(',').filter(|item| !item.is_empty()) {
            let (key, value) = item.split_once('=').ok_or_else(|| format!("no `=` in `{item}`"))?;
            match key {
                "engines" => {
                    states.engines = value.split('+').map(number).collect::<Result<_, _>>()?;
                }
                "dedicated" => states.dedicated = Some(number(value)?),
                "shared" => states.shared = Some(number(value)?),
                "celsius" => states.celsius = Some(number(value)?),
                "engine-hertz" => states.engine_hertz = Some(number(value)?),
                "memory-hertz" => states.memory_hertz = Some(number(value)?),
                _ => return Err(format!("unknown key `{key}`")),
            }
        }
        Ok(states)
    }

    /// Whether the adapter supports a state, given by its number in `DXCoreAdapterState`.
    pub(crate) fn supports(&self, state: u32) -> bool {
        match state {
            2 => self.dedicated.is_some() || self.shared.is_some(),
            4 => !self.engines.is_empty(),
            6 => self.celsius.is_some(),
            9 => self.engine_hertz.is_some() && !self.engines.is_empty(),
            10 => self.memory_hertz.is_some(),
            _ => false,
        }
    }

    /// The value of a state for an input. There is one physical adapter, the one with index 0.
    pub(crate) fn value(&self, state: u32, input: &[u8]) -> StateValue {
        if !self.supports(state) {
            return StateValue::NotSupported;
        }
        let value = match (state, dwords(input).as_deref()) {
            (2, Some([0, 0])) => self.dedicated.map(memory_usage),
            (2, Some([0, 1])) => self.shared.map(memory_usage),
            (4, Some([0, engine])) => self.engine(*engine).map(|time| numbers(&[time, 0])),
            (6, Some([0])) => self.celsius.map(|celsius| celsius.to_le_bytes().to_vec()),
            (9, Some([0, engine])) => {
                self.engine(*engine).and(self.engine_hertz).map(|hertz| numbers(&[hertz; 3]))
            }
            (10, Some([0])) => self.memory_hertz.map(|hertz| numbers(&[hertz; 3])),
            _ => None,
        };
        value.map_or(StateValue::InvalidInput, StateValue::Bytes)
    }

    fn engine(&self, index: u32) -> Option<u64> {
        self.engines.get(usize::try_from(index).ok()?).copied()
    }
}

/// `DXCoreMemoryUsage`: more is committed than is resident.
fn memory_usage(resident: u64) -> Vec<u8> {
    numbers(&[resident.saturating_add(1), resident])
}

fn numbers(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The 32-bit numbers of an input; `None` if its size is none of whole numbers.
fn dwords(input: &[u8]) -> Option<Vec<u32>> {
    let chunks = input.chunks(4).map(|chunk| chunk.try_into().map(u32::from_le_bytes));
    chunks.collect::<Result<_, _>>().ok()
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("invalid number `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn values_have_the_documented_layout() {
        let text =
            "7:engines=1000+20,dedicated=4096,celsius=61.5,engine-hertz=9,memory-hertz=8;-8:";
        let all = States::read_all(text).unwrap();
        assert_eq!(all[&Luid(-8)], States::default());
        let states = &all[&Luid(7)];
        let value = |state, values: &[u32]| states.value(state, &input(values));
        assert_eq!(value(2, &[0, 0]), StateValue::Bytes(numbers(&[4097, 4096])));
        assert_eq!(value(4, &[0, 1]), StateValue::Bytes(numbers(&[20, 0])));
        assert_eq!(value(6, &[0]), StateValue::Bytes(61.5_f32.to_le_bytes().to_vec()));
        assert_eq!(value(9, &[0, 0]), StateValue::Bytes(numbers(&[9, 9, 9])));
        assert_eq!(value(10, &[0]), StateValue::Bytes(numbers(&[8, 8, 8])));
        for (state, values) in [(2, &[0, 1][..]), (4, &[0, 2]), (4, &[1, 0]), (6, &[]), (9, &[0])] {
            assert_eq!(value(state, values), StateValue::InvalidInput, "{state} {values:?}");
        }
        assert_eq!(states.value(6, &[0; 5]), StateValue::InvalidInput);
        assert_eq!(value(7, &[]), StateValue::NotSupported);
        assert_eq!(all[&Luid(-8)].value(6, &input(&[0])), StateValue::NotSupported);
    }

    #[test]
    fn an_invalid_text_is_an_error_that_names_it() {
        for (text, wrong) in [
            ("7", "`7`"),
            ("x:", "`x`"),
            ("7:celsius", "`celsius`"),
            ("7:watts=1", "`watts`"),
            ("7:engines=1+b", "`b`"),
        ] {
            let error = States::read_all(text).unwrap_err();
            assert!(error.contains(wrong), "{text}: {error}");
        }
    }
}
