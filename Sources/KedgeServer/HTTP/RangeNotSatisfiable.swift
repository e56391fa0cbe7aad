internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel
internal import NIOCore

/// No byte of the file is in the requested range.
struct RangeNotSatisfiable: Error {
    let fileSize: Int64
}
