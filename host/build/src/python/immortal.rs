//! Objects of Python that live as long as the module.
//!
//! Python counts in each object how often it is in use, so that an instance changes nearly every page that it only looks at, and each changed
//! page costs it a fault. Objects of which the count is very large are immortal, and are not counted any more
//! (<https://peps.python.org/pep-0683/>). The SDK leaves a note of all objects that are there when the module is built.

use wasm_encoder::{Component, RawSection};
use wasmparser::{Parser, Payload};

use crate::segments::{self, Segment};

/// Words are whole where segments are at least so far apart.
const GAP: usize = 8;
/// What stands before and after the numbers of a note.
const FRAME: &[u8] = b"CONFIGURATOR: WHAT LASTS";
/// How many objects there are, the address of the list that has them, and those of its first and last one.
const NUMBERS: usize = 4;
/// What Python itself gives to those that it makes immortal, where addresses have 32 bits: `_Py_IMMORTAL_INITIAL_REFCNT`.
const IMMORTAL: u32 = 5 << 28;
/// From this count on an object is immortal there: `_Py_IMMORTAL_MINIMUM_REFCNT`.
const IS_IMMORTAL: u32 = 1 << 30;
/// Where a list has its length, and where the address of its elements.
const LENGTH: u32 = 8;
const ELEMENTS: u32 = 12;
/// What is said of another Python than the one whose layout these numbers are.
const UNKNOWN: &str = "its objects lie in memory otherwise than those of Python 3.14, which componentize-py 0.25 brings: build it with that";

/// The component with the objects of its note made immortal; as it is where there is no note.
///
/// # Errors
/// When it is no component, or the note is not true.
pub(super) fn immortalise(component: &[u8]) -> Result<Vec<u8>, String> {
    let mut made = Component::new();
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload.map_err(|error| error.to_string())?;
        if depth == 0
            && let Some((id, range)) = payload.as_section()
        {
            let bounds = |at: u64| usize::try_from(at).map_err(|error| error.to_string());
            let section = component.get(bounds(range.start)?..bounds(range.end)?);
            let section = section.unwrap_or_default();
            let changed = match payload {
                Payload::ModuleSection { .. } => in_module(section)?,
                _ => None,
            };
            let data = changed.as_deref().unwrap_or(section);
            made.section(&RawSection { id, data });
        }
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(made.finish())
}

/// The core module with the objects made immortal; `None` where it has no note.
fn in_module(core: &[u8]) -> Result<Option<Vec<u8>>, String> {
    // Most have no memory, and that of none is searched for nothing.
    if !contains(core, FRAME) {
        return Ok(None);
    }
    let mut memory = Memory::of(core)?;
    let Some([count, list, first, last]) = memory.note() else {
        return Ok(None);
    };
    let elements = memory.number(at(list, ELEMENTS)?).unwrap_or_default();
    let element = |index: u32| at(elements, index.saturating_mul(4));
    let is_true = memory.number(at(list, LENGTH)?) == Some(count)
        && memory.number(element(0)?) == Some(first)
        && memory.number(element(count.saturating_sub(1))?) == Some(last);
    if !is_true {
        return Err(UNKNOWN.to_owned());
    }
    for index in 0..count {
        let Some(object) = memory.number(element(index)?) else {
            continue;
        };
        let uses = memory.number(object).unwrap_or_default();
        if (1..IS_IMMORTAL).contains(&uses) {
            memory.write(object, IMMORTAL);
        }
    }
    segments::replace(core, &memory.0).map(Some)
}

fn at(address: u32, offset: u32) -> Result<u32, String> {
    address
        .checked_add(offset)
        .ok_or_else(|| "a note is of an object that is beyond the memory".to_owned())
}

fn contains(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|window| window == what)
}

/// What a memory has from the start.
struct Memory(Vec<Segment>);

impl Memory {
    /// That of a core module. Segments begin and end between words: zeros may be missing only where much is.
    fn of(core: &[u8]) -> Result<Self, String> {
        let mut segments = segments::read(core, GAP)?;
        let apart = |before: &Segment, after: &Segment| {
            before.start.saturating_add(before.bytes.len() + GAP) < after.start
        };
        if !segments.is_sorted_by(apart) {
            return Err(UNKNOWN.to_owned());
        }
        for Segment { start, bytes } in &mut segments {
            let missing = *start % 4;
            *start -= missing;
            bytes.splice(..0, std::iter::repeat_n(0, missing));
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        Ok(Self(segments))
    }

    /// The numbers between two frames. A copy of it that has no end any more is none.
    fn note(&self) -> Option<[u32; NUMBERS]> {
        let length = NUMBERS * 4;
        for Segment { bytes, .. } in &self.0 {
            for window in bytes.windows(2 * FRAME.len() + length) {
                let inner = window
                    .strip_prefix(FRAME)
                    .and_then(|rest| rest.strip_suffix(FRAME));
                let Some(inner) = inner else {
                    continue;
                };
                let mut numbers = [0; NUMBERS];
                for (number, bytes) in numbers.iter_mut().zip(inner.chunks_exact(4)) {
                    *number = u32::from_le_bytes(bytes.try_into().ok()?);
                }
                return Some(numbers);
            }
        }
        None
    }

    fn word(&mut self, address: u32) -> Option<&mut [u8]> {
        let address = usize::try_from(address).ok()?;
        let after = self.0.partition_point(|segment| segment.start <= address);
        let segment = self.0.get_mut(after.checked_sub(1)?)?;
        let offset = address.checked_sub(segment.start)?;
        segment.bytes.get_mut(offset..offset.checked_add(4)?)
    }

    /// The number at an address; `None` where all around is zero.
    fn number(&mut self, address: u32) -> Option<u32> {
        let bytes = self.word(address)?;
        Some(u32::from_le_bytes((*bytes).try_into().ok()?))
    }

    fn write(&mut self, address: u32, number: u32) {
        if let Some(word) = self.word(address) {
            word.copy_from_slice(&number.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a list at 256 whose two elements are at 512 and 768, of which the second is immortal already.
    const MEMORY: &str = r#"
        (data (i32.const 256) "\01\00\00\00typ\00\02\00\00\00\00\04\00\00")
        (data (i32.const 512) "\07\00\00\00typ\00")
        (data (i32.const 768) "\00\00\00\60typ\00")
        (data (i32.const 1025) "\02")
        (data (i32.const 1029) "\03")"#;
    const TRUE: &str = r"\02\00\00\00\00\01\00\00\00\02\00\00\00\03\00\00";

    fn component(note: &str) -> Vec<u8> {
        let frame = String::from_utf8_lossy(FRAME);
        let note = format!(r#"(data (i32.const 2048) "{frame}{note}{frame}")"#);
        let text = format!(
            "(component
                (core module (func (export \"f\")))
                (core module (memory (export \"m\") 1) {MEMORY} {note})
                (core instance (instantiate 0)))"
        );
        wat::parse_str(text).unwrap()
    }

    /// The words at these addresses of the second core module.
    fn words(component: &[u8], addresses: [u32; 3]) -> [Option<u32>; 3] {
        let mut modules =
            Parser::new(0)
                .parse_all(component)
                .filter_map(|payload| match payload.unwrap() {
                    Payload::ModuleSection {
                        unchecked_range, ..
                    } => Some(unchecked_range),
                    _ => None,
                });
        let range = modules.nth(1).unwrap();
        let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        let mut memory = Memory::of(&component[range]).unwrap();
        addresses.map(|address| memory.number(address))
    }

    #[test]
    fn what_the_note_names_is_immortal() {
        let made = immortalise(&component(TRUE)).unwrap();
        wasmparser::Validator::new_with_features(wasmparser::WasmFeatures::all())
            .validate_all(&made)
            .unwrap();
        let after = words(&made, [256, 512, 768]);
        assert_eq!(after, [Some(1), Some(IMMORTAL), Some(0x6000_0000)]);
    }

    #[test]
    fn what_has_no_note_stays_as_it_is() {
        let half = r"\02\00\00\00";
        for note in ["", half] {
            let component = component(note);
            let made = immortalise(&component).unwrap();
            let addresses = [256, 512, 768];
            assert_eq!(words(&made, addresses), words(&component, addresses));
        }
    }

    #[test]
    fn data_that_is_not_in_order_is_refused() {
        let frame = String::from_utf8_lossy(FRAME);
        let late = format!(r#"{TRUE}{frame}") (data (i32.const 100) "late"#);
        immortalise(&component(&late)).unwrap_err();
    }

    #[test]
    fn a_note_that_is_not_true_is_refused() {
        let others = [
            r"\03\00\00\00\00\01\00\00\00\02\00\00\00\03\00\00",
            r"\02\00\00\00\00\f1\00\00\00\02\00\00\00\03\00\00",
            r"\02\00\00\00\ff\ff\ff\ff\00\02\00\00\00\03\00\00",
            r"\02\00\00\00\00\01\00\00\04\02\00\00\00\03\00\00",
            r"\02\00\00\00\00\01\00\00\00\02\00\00\04\03\00\00",
        ];
        for note in others {
            immortalise(&component(note)).unwrap_err();
        }
        immortalise(b"no component").unwrap_err();
    }
}
