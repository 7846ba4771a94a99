//! Figures that are kept in the tree, to see when one gets worse.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use configurator_tests::guests;
use serde::{Deserialize, Serialize};

/// The share by which a figure may be worse than the kept one before it is named.
const TOLERANCE: f64 = 0.1;

/// A figure that is kept.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Kept {
    figure: f64,
    better: Better,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Better {
    Higher,
    Lower,
}

impl Kept {
    /// Returns by which share a figure is worse than this one; negative if it is better.
    fn worse_by(self, figure: f64) -> f64 {
        match self.better {
            Better::Higher => self.figure / figure - 1.0,
            Better::Lower => figure / self.figure - 1.0,
        }
    }
}

fn file() -> PathBuf {
    guests::workspace().join("tests/benches/chain/figures.json")
}

fn read() -> Result<BTreeMap<String, Kept>> {
    let file = file();
    let text = std::fs::read(&file).with_context(|| file.display().to_string())?;
    serde_json::from_slice(&text).with_context(|| file.display().to_string())
}

/// Prints which of these figures are worse than those kept in `tests/benches/chain/figures.json` by more than 10 %.
pub fn compare(figures: &[(String, f64)]) -> Result<()> {
    let kept = read()?;
    for (name, figure) in figures {
        let Some(kept) = kept.get(name) else { continue };
        let worse = kept.worse_by(*figure);
        if worse > TOLERANCE {
            println!(
                "WORSE: {name} is {figure:.2}, {:.0} % worse than the kept {:.2}",
                worse * 100.0,
                kept.figure
            );
        }
    }
    Ok(())
}

/// Keeps these figures in place of those with the same names.
pub fn keep(figures: &[(String, f64)]) -> Result<()> {
    let mut kept = read()?;
    for (name, figure) in figures {
        if let Some(kept) = kept.get_mut(name) {
            kept.figure = (figure * 100.0).round() / 100.0;
        }
    }
    let text = serde_json::to_string_pretty(&kept)?;
    Ok(std::fs::write(file(), text + "\n")?)
}
