import CCurl

/// Owns one libcurl easy handle and the memory that libcurl points to while it lives.
///
/// Handles are not reused: the multi handle keeps the connections, and a new handle is cheaper than
/// resetting an old one's options. The handle must have left its multi handle before it is freed.
@safe struct EasyHandle: ~Copyable {
    /// An option that libcurl refused.
    struct Refusal: Error {
        let result: CURLcode
        let detail: String
    }

    let pointer: UnsafeMutableRawPointer
    private let message: UnsafeMutablePointer<CChar>
    private var fields: UnsafeMutablePointer<curl_slist>?

    init() throws(Refusal) {
        guard let pointer = unsafe curl_easy_init() else {
            throw Refusal(result: CURLE_FAILED_INIT, detail: "curl_easy_init")
        }
        unsafe self.pointer = pointer
        unsafe self.message = .allocate(capacity: Int(CURL_ERROR_SIZE))
        unsafe self.message.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        unsafe self.fields = nil
        let result = unsafe ccurl_easy_set_pointer(pointer, CURLOPT_ERRORBUFFER, message)
        precondition(result == CURLE_OK, "libcurl always takes an error buffer")
    }

    deinit {
        unsafe curl_easy_cleanup(pointer)
        unsafe curl_slist_free_all(fields)
        unsafe message.deallocate()
    }

    /// libcurl's last error text for this handle.
    func detail(of result: CURLcode) -> String {
        unsafe message.pointee == 0
            ? String(cString: curl_easy_strerror(result)) : String(cString: message)
    }

    /// The details of a failure that libcurl reports besides its code.
    func findings(of result: CURLcode) -> CurlFailure.Findings {
        CurlFailure.Findings(
            systemError: number(CURLINFO_OS_ERRNO),
            verification: number(CURLINFO_SSL_VERIFYRESULT),
            proxyStatus: number(CURLINFO_HTTP_CONNECTCODE), detail: detail(of: result))
    }

    private func number(_ info: CURLINFO) -> Int {
        var answer = 0
        // Information that libcurl does not have counts as none.
        return unsafe ccurl_easy_get_long(pointer, info, &answer) == CURLE_OK ? answer : 0
    }

    /// Pauses each direction or lets it continue. libcurl may call the write callback from here.
    func pause(receiving: Bool, sending: Bool) -> CURLcode {
        let paused =
            (receiving ? CURLPAUSE_RECV : CURLPAUSE_RECV_CONT)
            | (sending ? CURLPAUSE_SEND : CURLPAUSE_SEND_CONT)
        return unsafe curl_easy_pause(pointer, paused)
    }

    /// Makes libcurl close the connection when this transfer ends.
    func forbidReuse() {
        let result = unsafe ccurl_easy_set_long(pointer, CURLOPT_FORBID_REUSE, 1)
        precondition(result == CURLE_OK, "libcurl always takes this option")
    }

    func set(_ option: CURLoption, to value: Int) throws(Refusal) {
        try unsafe check(ccurl_easy_set_long(pointer, option, value), option)
    }

    func set(_ option: CURLoption, to flag: Bool) throws(Refusal) {
        try set(option, to: flag ? 1 : 0)
    }

    func set(_ option: CURLoption, toOffset value: Int64) throws(Refusal) {
        try unsafe check(ccurl_easy_set_offset(pointer, option, curl_off_t(value)), option)
    }

    /// Sets an option whose text libcurl copies; nil removes its default.
    func set(_ option: CURLoption, to text: String?) throws(Refusal) {
        try unsafe check(ccurl_easy_set_string(pointer, option, text), option)
    }

    func set(_ option: CURLoption, toPointer value: UnsafeMutableRawPointer) throws(Refusal) {
        try unsafe check(ccurl_easy_set_pointer(pointer, option, value), option)
    }

    /// Sets the header lines to send; libcurl does not copy them.
    mutating func setFields(_ lines: [String]) throws(Refusal) {
        for line in lines {
            guard let longer = unsafe curl_slist_append(fields, line) else {
                throw Refusal(result: CURLE_OUT_OF_MEMORY, detail: "curl_slist_append")
            }
            unsafe fields = longer
        }
        try unsafe check(
            ccurl_easy_set_list(pointer, CURLOPT_HTTPHEADER, fields), CURLOPT_HTTPHEADER)
    }

    func check(_ result: CURLcode, _ option: CURLoption) throws(Refusal) {
        guard result == CURLE_OK else {
            throw Refusal(result: result, detail: "curl_easy_setopt(\(option.rawValue))")
        }
    }
}
