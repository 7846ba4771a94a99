//! Limits of code, checked before anything is compiled.

use wasmparser::{Parser, Payload};

/// Limits of the code of one module. The cost of compiling grows faster than the size of a function, and each function has a fixed
/// cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeLimits {
    /// Bytes of one function. Default: 2 MiB; the largest of CPython has 417 KiB.
    pub function_size: u64,
    /// Functions of all core modules together. Default: 100,000; a module in Python has 13,355.
    pub functions: u64,
    /// Bytes of all functions together. Default: 64 MiB; a module in Python has 6.3 MiB.
    pub code_size: u64,
}

impl Default for CodeLimits {
    fn default() -> Self {
        Self {
            function_size: 2 << 20,
            functions: 100_000,
            code_size: 64 << 20,
        }
    }
}

/// Code passes a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CodeTooLarge {
    /// One function passes the limit.
    #[error("its function {index} has {size} bytes, and a function may have {limit}")]
    Function {
        /// Counts all functions with code, from 0.
        index: u64,
        /// In bytes.
        size: u64,
        /// In bytes.
        limit: u64,
    },
    /// There are too many functions.
    #[error("it has {count} functions, and a module may have {limit}")]
    Functions {
        /// The number of functions.
        count: u64,
        /// The allowed number of functions.
        limit: u64,
    },
    /// All functions together pass the limit.
    #[error("its functions have {size} bytes in all, and those of a module may have {limit}")]
    Code {
        /// In bytes.
        size: u64,
        /// In bytes.
        limit: u64,
    },
}

/// Checks the code of a component, in time that is linear in its size. Whatever cannot be read is left to the compiler, which refuses
/// it before it compiles any function.
pub(crate) fn check(bytes: &[u8], limits: &CodeLimits) -> Result<(), CodeTooLarge> {
    let mut code_size: u64 = 0;
    let mut functions: u64 = 0;
    for payload in Parser::new(0).parse_all(bytes) {
        let Ok(payload) = payload else {
            break;
        };
        match payload {
            // The header has the count. Reading each body first would be too late.
            Payload::CodeSectionStart { count, .. } => {
                let count = functions.saturating_add(u64::from(count));
                if count > limits.functions {
                    return Err(CodeTooLarge::Functions {
                        count,
                        limit: limits.functions,
                    });
                }
            }
            Payload::CodeSectionEntry(body) => {
                let range = body.range();
                let size = range.end.saturating_sub(range.start);
                if size > limits.function_size {
                    return Err(CodeTooLarge::Function {
                        index: functions,
                        size,
                        limit: limits.function_size,
                    });
                }
                functions = functions.saturating_add(1);
                code_size = code_size.saturating_add(size);
                if code_size > limits.code_size {
                    return Err(CodeTooLarge::Code {
                        size: code_size,
                        limit: limits.code_size,
                    });
                }
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: CodeLimits = CodeLimits {
        function_size: 20,
        functions: 3,
        code_size: 40,
    };

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let bytes = wat::parse_str(text).unwrap();
        let told = super::check(&bytes, &LIMITS)
            .map_or_else(|error| error.to_string(), |()| "fits".into());
        assert_eq!(told, expected);
    }

    /// A core module with functions of so many instructions of one byte each.
    fn module(functions: &[usize]) -> String {
        let functions = functions
            .iter()
            .map(|size| format!("(func {})", "nop ".repeat(*size)));
        format!("(core module {})", functions.collect::<String>())
    }

    #[test]
    fn code_is_held_to_each_limit() {
        check("(component)", "fits");
        check(&format!("(component {})", module(&[18, 0, 0])), "fits");
        check(
            &format!("(component {})", module(&[0, 19])),
            "its function 1 has 21 bytes, and a function may have 20",
        );
        check(
            &format!("(component {} {})", module(&[0, 0]), module(&[0, 0])),
            "it has 4 functions, and a module may have 3",
        );
        check(
            &format!(
                "(component {} (component {}))",
                module(&[18, 18]),
                module(&[1])
            ),
            "its functions have 43 bytes in all, and those of a module may have 40",
        );
    }

    #[test]
    fn what_cannot_be_read_is_left_to_the_compiler() {
        let bytes = b"\0asm\x0d\0\x01\0\x01\x05";
        assert_eq!(super::check(bytes, &LIMITS), Ok(()));
    }
}
