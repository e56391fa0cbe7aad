vcl 4.1;

# Varnish in front of Kedge. It answers 503 after a 104: use kedge.interim-never.yaml with it.
#
# Adapt the address. Start it with `varnishd -f varnish.vcl -a 127.0.0.1:8081`.

backend kedge {
    .host = "127.0.0.1";
    .port = "8080";
    .connect_timeout = 5s;
    # The longest wait of finalize is shorter.
    .first_byte_timeout = 120s;
    .between_bytes_timeout = 60s;
}

sub vcl_recv {
    # No caching: files are private, and bodies pass while they arrive. Varnish adds
    # X-Forwarded-For: put 127.0.0.1 into the setting trustedProxies.
    return (pass);
}
