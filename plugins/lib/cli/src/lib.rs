//! The face of every command: what goes to stdout and what to stderr, formats, tables, questions, errors, exit codes
//! and signals. stdout is data, stderr is narration.

mod complete;
pub mod contents;
mod entry;
pub mod explanation;
pub mod files;
pub mod findings;
pub mod fleet_file;
mod image_args;
mod jsonpath;
pub mod list;
pub mod options;
mod output;
mod plan_args;
mod plan_view;
mod remedy;
mod removal_args;
mod resource_args;
mod rows;
mod screen;
mod sent;
mod table;
mod tokens;
mod troubleshoot;
mod ui;
mod values_args;
mod waiting_args;

pub use entry::{Described, Stop, VERSION, run_main, serve_main};
pub use image_args::ImageArgs;
pub use output::{DryRunArg, Format, OutputArgs, document, object_list, without_nulls};
pub use plan_args::PlanArgs;
pub use plan_view::{PlanView, applied_document, holds_secrets};
pub use remedy::{of_contexts, words};
pub use removal_args::RemovalArgs;
pub use resource_args::{NodeArgs, QosWord, ResourceArgs};
pub use sent::{Sent, SentAll, WaitedFor, Withdrawn, of_clusters, withdrawn};
pub use table::{Table, clean};
pub use tokens::{TokenListArgs, follow_tokens, tokens};
pub use troubleshoot::{Found, Troubleshoot};
pub use ui::{Shown, Ui, UiArgs};
pub use values_args::ValuesArgs;
pub use waiting_args::{ApplyArgs, ConcurrencyArgs, SendArgs, WaitArgs, WithdrawArgs};
