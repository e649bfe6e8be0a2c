//! Compares two trees of one cluster: what must be rendered to see how they differ, and where each difference comes
//! from.
//!
//! ```text
//! skip_plan ──▶ walk of both trees ──▶ skip_check ──▶ equal_inputs ──▶ pair ──▶ not_rendered
//!   (outline, excerpt)                (built after all)  (releases)     (rendered)
//! inputs, changed_value: what a difference comes from
//! ```
//!
//! # Why skipping work is sound
//!
//! A comparison must find exactly the differences between two full renders. Rendering is a function: the objects of a
//! Kustomization follow from its spec, files and variables; those of a release from its [inputs](crate::Inputs), from
//! the kinds that the cluster serves, and from the objects that its chart looks up. So what has equal inputs on both
//! sides has equal objects, and need not be rendered. It remains to show that nothing *else* is missed because these
//! objects are not there:
//!
//! 1. **A Kustomization is not built** ([`skip_plan`]) if no file that it can read has changed and its text shows
//!    clearly what it gives: plain objects, and releases of charts in the repository ([`outline`]). Its objects can
//!    only matter through something that names them or that they name. All names are in its text. So everything that
//!    differs elsewhere (data, sources, charts) is searched in that text, and if it is mentioned, the Kustomization
//!    is built ([`skip_check`]). A mention without effect costs time, but never changes the result.
//! 2. **A release is not rendered** ([`equal_inputs`]) if its inputs are equal. Its objects matter to others in five ways:
//!    - *It prints objects of Flux*, which lead to files that may have changed. A chart at hand, in the repository or
//!      in the cache, is searched for them ([`quick_scan`](crate::release::quick_scan)), and so are all values. A
//!      chart that would have to be fetched is not searched: it is assumed to print none, unless its values name a
//!      directory of the repository. The answer says how many releases were left out this way
//!      ([`NotRendered::unfetched`](crate::NotRendered)).
//!    - *It prints data* that gives variables or values to something that differs. If such data is missing,
//!      everything at hand is rendered.
//!    - *It defines kinds* that a chart which differs asks for. Then all releases that may define them are rendered, and
//!      their charts fetched.
//!    - *It asks for kinds* that are added or removed. Then every release is rendered.
//!    - *It looks up objects*, or is looked up. A chart is rendered if it looks up a kind of which some object
//!      differs. If something that differs looks up an object that is not there, everything at hand is rendered.
//! 3. **What is now rendered may differ or lead to more**, so both steps are repeated until nothing is added. After a
//!    fixed number of rounds, everything at hand is rendered.
//! 4. **What could not be rendered** is judged by its inputs alone: equal inputs give equal objects, different inputs
//!    are a change of unknown content ([`not_rendered`]). If one side could not load a chart, it is not assumed that
//!    the chart defines no kinds.
//!
//! [`unskipped_pair_unit`](crate::unskipped_pair_unit) renders both sides in full instead
//! (`portolan diff --no-skip`). The corpus tests change files of every repository and compare the two answers.

pub(crate) mod changed_value;
pub(crate) mod equal_inputs;
pub(crate) mod excerpt;
pub(crate) mod inputs;
pub(crate) mod not_rendered;
pub(crate) mod outline;
pub(crate) mod pair;
pub(crate) mod skip_check;
pub(crate) mod skip_plan;
pub(crate) mod tree_charts;
