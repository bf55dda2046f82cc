//! The values of one page: encoded well, then changed byte by byte; or any bytes at all.

use crate::choices::Choices;
use crate::encode::Physical;
use crate::host;
use crate::plan::{Only, Plan};
use crate::targets::file::examine_plan;
use crate::tree::Tree;

/// One flat column in one page that is not compressed.
pub(crate) fn run(data: &[u8]) {
    let choices = &mut Choices::new(data);
    let (options, manner) = (host::options(choices), host::manner(choices));
    let physical = Physical::choose(choices);
    let repetition = i32::from(choices.once_in(3));
    let tree = Tree::of_leaf(physical, repetition, choices);
    let rows_max = choices.pick(&[40, 3, 200, 1100]);
    let only = Only { uncompressed: true, one_page: true };
    let mut plan = Plan::choose(tree, rows_max, only, choices);
    match choices.byte() % 4 {
        0 => {}
        1 => plan.replace_values(choices.rest().to_vec()),
        _ => plan.edit_values(choices),
    }
    examine_plan(&plan, &options, manner);
}
