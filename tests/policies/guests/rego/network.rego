package ocm

allow if http.send({"method": "GET", "url": "https://example.com"}).status_code == 200
