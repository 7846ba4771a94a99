//! Data of a core module in few segments.
//!
//! An engine that makes an instance does something for each segment. The memory of a module that has started has thousands, one for every
//! few bytes that are not zero.

use wasm_encoder::{ConstExpr, DataCountSection, DataSection, Module, RawSection};
use wasmparser::{DataKind, Operator, Parser, Payload};

/// Zeros that are written out to save a segment, where an engine makes an instance segment by segment.
const GAP: usize = 4096;

/// Bytes at a place of the memory.
pub(crate) struct Segment {
    pub(crate) start: usize,
    pub(crate) bytes: Vec<u8>,
}

/// The module with neighbouring segments made one. Segments that are not for the start of a memory are left out: code that uses them does
/// not get through the checks of what this returns.
///
/// # Errors
/// When it is no core module with one memory.
pub(crate) fn merge(core: &[u8]) -> Result<Vec<u8>, String> {
    replace(core, &read(core, GAP)?)
}

/// The data that is there from the start, with segments made one that have no more than so many zeros between them.
///
/// # Errors
/// When it is no core module with one memory.
pub(crate) fn read(core: &[u8], gap: usize) -> Result<Vec<Segment>, String> {
    let mut segments: Vec<Segment> = Vec::new();
    for payload in Parser::new(0).parse_all(core) {
        if let Payload::DataSection(section) = payload.map_err(text)? {
            for data in section {
                let data = data.map_err(text)?;
                if let DataKind::Active { offset_expr, .. } = data.kind {
                    add(&mut segments, gap, place(&offset_expr)?, data.data);
                }
            }
        }
    }
    Ok(segments)
}

/// The module with these segments instead of its own.
///
/// # Errors
/// When it is no core module.
pub(crate) fn replace(core: &[u8], segments: &[Segment]) -> Result<Vec<u8>, String> {
    let mut module = Module::new();
    for payload in Parser::new(0).parse_all(core) {
        let payload = payload.map_err(text)?;
        match &payload {
            Payload::DataCountSection { .. } => {
                let count = u32::try_from(segments.len()).map_err(|error| error.to_string())?;
                module.section(&DataCountSection { count });
            }
            Payload::DataSection(_) => {
                let mut section = DataSection::new();
                for Segment { start, bytes } in segments {
                    let start = u32::try_from(*start).map_err(|error| error.to_string())?;
                    let offset = ConstExpr::i32_const(start.cast_signed());
                    section.active(0, &offset, bytes.iter().copied());
                }
                module.section(&section);
            }
            _ => {
                if let Some((id, range)) = payload.as_section() {
                    let bounds = |at: u64| usize::try_from(at).map_err(|error| error.to_string());
                    let range = bounds(range.start)?..bounds(range.end)?;
                    let data = core.get(range).unwrap_or_default();
                    module.section(&RawSection { id, data });
                }
            }
        }
    }
    Ok(module.finish())
}

/// Adds bytes behind those that are there.
fn add(segments: &mut Vec<Segment>, gap: usize, start: usize, bytes: &[u8]) {
    if let Some(last) = segments.last_mut() {
        let end = last.start + last.bytes.len();
        if start >= end && start - end <= gap {
            last.bytes.resize(start - last.start, 0);
            last.bytes.extend_from_slice(bytes);
            return;
        }
    }
    segments.push(Segment {
        start,
        bytes: bytes.to_vec(),
    });
}

fn place(offset: &wasmparser::ConstExpr<'_>) -> Result<usize, String> {
    match offset.get_operators_reader().read() {
        Ok(Operator::I32Const { value }) => Ok(value.cast_unsigned() as usize),
        _ => Err("a segment begins at no number of 32 bits".to_owned()),
    }
}

fn text(error: wasmparser::BinaryReaderError) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// Where segments begin, and what they have; with the lengths of runs of zeros.
    fn check(segments: &str, expected: Expect) {
        let core = wat::parse_str(format!("(module (memory 1) {segments})")).unwrap();
        let merged = merge(&core).unwrap();
        wasmparser::validate(&merged).unwrap();
        let mut lines = String::new();
        for payload in Parser::new(0).parse_all(&merged) {
            let Payload::DataSection(section) = payload.unwrap() else {
                continue;
            };
            for data in section {
                let data = data.unwrap();
                let DataKind::Active { offset_expr, .. } = data.kind else {
                    panic!("a segment that is not for the start")
                };
                let start = place(&offset_expr).unwrap();
                let text = String::from_utf8_lossy(data.data);
                let zeros = text.matches('\0').count();
                lines.push_str(&format!(
                    "{start}: {}, {zeros} zeros\n",
                    text.replace('\0', "")
                ));
            }
        }
        expected.assert_eq(&lines);
    }

    #[test]
    fn neighbours_become_one() {
        check(
            r#"(data (i32.const 8) "ab") (data (i32.const 12) "cd") (data (i32.const 14) "e") (data (i32.const 4000) "f")"#,
            expect![[r#"
                8: abcdef, 3987 zeros
            "#]],
        );
    }

    #[test]
    fn what_is_far_away_or_comes_before_stays_apart() {
        check(
            r#"(data (i32.const 8) "a") (data (i32.const 4106) "b") (data (i32.const 0) "c") (data "passive")"#,
            expect![[r#"
                8: a, 0 zeros
                4106: b, 0 zeros
                0: c, 0 zeros
            "#]],
        );
    }
}
