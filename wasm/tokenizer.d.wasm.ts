/** Imported with `type: "file"`, the module is its path. */
declare const path: string
export default path
