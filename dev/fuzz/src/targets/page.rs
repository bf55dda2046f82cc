//! Pages of one column: their headers, levels, dictionaries, codecs, and lies in all of them.

use crate::choices::Choices;
use crate::encode::Physical;
use crate::host;
use crate::plan::{Only, Plan};
use crate::targets::file::examine_plan;
use crate::tree::Tree;

/// One column, flat or nested, in a few pages.
pub(crate) fn run(data: &[u8]) {
    let choices = &mut Choices::new(data);
    let (options, manner) = (host::options(choices), host::manner(choices));
    let tree = match choices.byte() % 4 {
        0 => Tree::nested(choices),
        repetition => {
            let physical = Physical::choose(choices);
            Tree::of_leaf(physical, i32::from(repetition) - 1, choices)
        }
    };
    let rows_max = choices.pick(&[30, 4, 100, 600]);
    let mut plan = Plan::choose(tree, rows_max, Only::default(), choices);
    for _ in 0..choices.below(4) {
        plan.lie_in_page(choices);
    }
    examine_plan(&plan, &options, manner);
}
