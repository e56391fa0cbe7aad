/// No byte of the file is in the requested range.
struct RangeNotSatisfiable: Error {
    let fileSize: Int64
}
