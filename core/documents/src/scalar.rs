//! Scalars that are exactly what the file says.

use std::fmt::{Display, UpperHex};
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};
use serde_saphyr::Commented;

use crate::closest;
use crate::message::{expected, with_hint};
use crate::value::Value;

/// Text: anything in quotes, and a plain scalar that is no boolean and not empty. A plain
/// number is taken as written (`displayVersion: 1809`), since quotes are easily forgotten;
/// one that would not read back the same (`0x10`, `2.50`) needs them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Text(pub String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Text)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// [`Text`] of at least one character.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NonEmpty(pub String);

impl<'de> Deserialize<'de> for NonEmpty {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Text(text) = Text::deserialize(deserializer)?;
        if text.is_empty() {
            return Err(D::Error::custom("expected text, found an empty text"));
        }
        Ok(NonEmpty(text))
    }
}

impl Serialize for NonEmpty {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Text that parses as a `T`, whose error becomes the message; `A` is the advice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parsed<T, A = NoAdvice>(pub T, PhantomData<A>);

/// What to write where text does not parse.
pub trait Advice {
    /// The hint of the error.
    const HINT: Option<&'static str>;
}

/// The error of the type says it all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoAdvice;

impl Advice for NoAdvice {
    const HINT: Option<&'static str> = None;
}

impl<T, A> From<T> for Parsed<T, A> {
    fn from(value: T) -> Self {
        Parsed(value, PhantomData)
    }
}

impl<'de, T: FromStr<Err: Display>, A: Advice> Deserialize<'de> for Parsed<T, A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Text(text) = Text::deserialize(deserializer)?;
        text.parse::<T>().map(Parsed::from).map_err(|error: T::Err| {
            let what = error.to_string();
            D::Error::custom(A::HINT.map_or(what.clone(), |hint| with_hint(&what, hint)))
        })
    }
}

impl<T: Display, A> Serialize for Parsed<T, A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// A whole number from `MIN` to `MAX`: decimal, `0x…` or `0o…`, without quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Whole<T, const MIN: i128, const MAX: i128>(pub T);

impl<T: Serialize, const MIN: i128, const MAX: i128> Serialize for Whole<T, MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// For `serialize_with`: a number with its hexadecimal spelling of `DIGITS` digits as a
/// comment, since serde has no hexadecimal numbers.
pub fn write_hex<S, T, const MIN: i128, const MAX: i128, const DIGITS: usize>(
    number: &Whole<T, MIN, MAX>,
    serializer: S,
) -> Result<S::Ok, S::Error>
where
    S: Serializer,
    T: Serialize + Copy + UpperHex,
{
    Commented(number.0, format!("0x{:0DIGITS$X}", number.0)).serialize(serializer)
}

/// A [`Whole`] that may be written in quotes, as in the files of the earlier plugins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LenientWhole<T, const MIN: i128, const MAX: i128>(pub T);

impl<'de, T, const MIN: i128, const MAX: i128> Deserialize<'de> for Whole<T, MIN, MAX>
where
    T: TryFrom<i128>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        whole(&value, MIN..=MAX).map(Whole).map_err(D::Error::custom)
    }
}

impl<'de, T, const MIN: i128, const MAX: i128> Deserialize<'de> for LenientWhole<T, MIN, MAX>
where
    T: TryFrom<i128>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = match Value::deserialize(deserializer)? {
            Value::Text(text) => unquoted_number(&text).map_or(Value::Text(text), Value::Whole),
            value => value,
        };
        whole(&value, MIN..=MAX).map(LenientWhole).map_err(D::Error::custom)
    }
}

/// Parses a text as a decimal number. A leading zero is not accepted: YAML 1.1 reads such a
/// number as octal and YAML 1.2 does not.
fn unquoted_number(text: &str) -> Option<i128> {
    let number: i128 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

fn whole<T: TryFrom<i128>>(value: &Value, range: RangeInclusive<i128>) -> Result<T, String> {
    if let Value::Whole(number) = value
        && range.contains(number)
        && let Ok(number) = T::try_from(*number)
    {
        return Ok(number);
    }
    let what = match (*range.start(), *range.end()) {
        (LUID_MIN, LUID_MAX) => "a signed 64-bit number".to_owned(),
        (low, high) => format!("a whole number from {low} to {high}"),
    };
    let message = expected(&what, value);
    Err(match value {
        Value::Text(text) if unquoted_number(text).is_some() => {
            with_hint(&message, "leave the quotes out")
        }
        _ => message,
    })
}

const LUID_MIN: i128 = i64::MIN as i128;
const LUID_MAX: i128 = i64::MAX as i128;

/// `true` or `false`, without quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flag(pub bool);

impl Serialize for Flag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(self.0)
    }
}

/// A [`Flag`] that may be written in quotes, as in the files of the earlier plugins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LenientFlag(pub bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        flag(&Value::deserialize(deserializer)?).map(Flag).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for LenientFlag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let read = match &value {
            Value::Text(text) => unquoted_flag(text).ok_or(()),
            _ => Err(()),
        };
        read.or_else(|()| flag(&value)).map(LenientFlag).map_err(D::Error::custom)
    }
}

fn unquoted_flag(text: &str) -> Option<bool> {
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if is("true") { Some(true) } else { is("false").then_some(false) }
}

fn flag(value: &Value) -> Result<bool, String> {
    let message = expected("true or false", value);
    match value {
        Value::Boolean(value) => Ok(*value),
        Value::Text(text) if unquoted_flag(text).is_some() => {
            Err(with_hint(&message, "leave the quotes out"))
        }
        _ => Err(message),
    }
}

/// One of the few values of `T`, by its name in `N`, compared without ASCII case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OneOf<T, N>(pub T, PhantomData<N>);

/// The names that the values of `T` have in a file.
pub trait Names<T> {
    /// Every value and its name.
    fn names() -> impl Iterator<Item = (&'static str, T)>;
}

impl<T, N> From<T> for OneOf<T, N> {
    fn from(value: T) -> Self {
        OneOf(value, PhantomData)
    }
}

impl<'de, T, N: Names<T>> Deserialize<'de> for OneOf<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = <Value>::deserialize(deserializer)?;
        let names: Vec<&str> = N::names().map(|(name, _)| name).collect();
        let at = position(&value, &names).map_err(D::Error::custom)?;
        let (_, value) = N::names().nth(at).expect("the position of a name");
        Ok(value.into())
    }
}

/// Which of `names` a value is, without case. It is compiled once instead of once for each type.
fn position(value: &Value, names: &[&str]) -> Result<usize, String> {
    let word = if let Value::Text(text) = value { text } else { "" };
    names.iter().position(|name| name.eq_ignore_ascii_case(word)).ok_or_else(|| {
        let message = expected(&format!("one of {}", names.join(", ")), value);
        match closest(word, names.iter().copied()) {
            Some(name) => with_hint(&message, &format!("did you mean `{name}`?")),
            None => message,
        }
    })
}

impl<T: PartialEq, N: Names<T>> Serialize for OneOf<T, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let named = N::names().find(|(_, value)| *value == self.0);
        serializer.serialize_str(named.map_or("", |(name, _)| name))
    }
}
