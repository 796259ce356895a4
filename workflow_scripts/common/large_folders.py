"""Write folders of gigabytes."""

from workflow_scripts.common.files import write_atomically

# The preparation of data has it under this name. With another one all data would be stale.
write_large_folder = write_atomically
