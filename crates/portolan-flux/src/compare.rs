//! Two trees of one cluster: what has to be rendered to see how they differ, and what each difference comes from.
//!
//! ```text
//! skip_plan ──▶ walk of both trees ──▶ skip_check ──▶ equal_inputs ──▶ pair ──▶ not_rendered
//!   (outline, excerpt)                (built after all)  (releases)     (rendered)
//! inputs, changed_value: what a difference comes from
//! ```
//!
//! # Why skipping work is sound
//!
//! A comparison must find exactly what two full renders differ in. Rendering is a function: the objects of a
//! Kustomization follow from its spec, files and variables; those of a release from its [inputs](crate::Inputs), from the
//! kinds that the cluster serves, and from the objects that its chart looks up. So whatever has equal inputs on both sides
//! has equal objects, and need not be rendered to be compared. What is left to show is that nothing *else* is missed
//! because those objects are not there:
//!
//! 1. **A Kustomization is not built** ([`skip_plan`]) if all files it can read are untouched and its text leaves no doubt
//!    what it gives: plain objects, and releases of charts that lie in the repository ([`outline`]). Its objects can only
//!    matter through something that names them or that they name. All names stand in its text, so whatever differs
//!    elsewhere (data, sources, charts) is looked for in that text, and a mention has it built ([`skip_check`]). A mention
//!    that means nothing costs time, never a difference.
//! 2. **A release is not rendered** ([`equal_inputs`]) if its inputs are equal. Its objects matter to others in five ways:
//!    - *It prints objects of Flux*, which lead to files that may have been touched. A chart at hand, in the repository or
//!      in the cache, is searched for that ([`quick_scan`](crate::release::quick_scan)), and so are all values. A chart that
//!      would have to be fetched is not: it is taken to print none, unless its values name a directory of the repository.
//!      How many releases were left out unseen is part of the answer ([`NotRendered::unfetched`](crate::NotRendered)).
//!    - *It prints data* that something which differs takes its variables or values from. Where such data is missing,
//!      everything at hand is rendered after all.
//!    - *It defines kinds* that a chart which differs asks for. Then all releases that may define them are rendered, and
//!      their charts fetched.
//!    - *It asks for kinds* that come or go. Then every release is rendered.
//!    - *It looks up objects*, or is looked up. A chart that looks up a kind of which an object differs is rendered; where
//!      something that differs looks up an object that is not there, everything at hand is.
//! 3. **What is rendered after all may differ or lead on**, so both steps are repeated until nothing is added. After a
//!    fixed number of rounds everything at hand is rendered.
//! 4. **What could not be rendered** is judged by its inputs alone: equal ones give equal objects, others are a change of
//!    unknown content ([`not_rendered`]). A chart that one side could not load is not taken for one that defines no kinds.
//!
//! [`unskipped_pair_unit`](crate::unskipped_pair_unit) renders both sides in full instead (`portolan diff --no-skip`). The
//! corpus tests change files of every repository and hold the two answers against each other.

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
