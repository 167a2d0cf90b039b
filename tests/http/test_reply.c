/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_reply.c - our own words, to the byte.
 */
#include "http/reply.h"

#include "http/framing.h"
#include "http/heads.h"

#define NOW	"Sun, 06 Nov 1994 08:49:37 GMT"

static const struct reply usual = {
	.why = FAIL_QUEUE_FULL, .via = "penstock", .date = NOW,
};

static struct str
failure_text(const struct reply *r)
{
	static char text[4096];
	struct out o;

	out_init(&o, text, sizeof text);
	size_t content = reply_failure(&o, r);
	ck_assert(!out_is_full(&o));
	/* What it says it wrote stands behind the empty line. */
	ck_assert_mem_eq(text + out_len(&o) - content - 4, "\r\n\r\n", 4);
	return out_text(&o);
}

START_TEST(a_failure_says_its_reason_three_times)
{
	struct reply r = usual;

	r.retry_after = 7;
	r.close = true;
	same_text(failure_text(&r),
	    "HTTP/1.1 503 Service Unavailable\r\n"
	    "Date: " NOW "\r\n"
	    "Proxy-Status: penstock; error=connection_limit_reached; "
	    "details=\"queue_full\"\r\n"
	    "Cache-Control: no-store\r\n"
	    "Content-Type: text/plain; charset=utf-8\r\n"
	    "Content-Length: 81\r\n"
	    "Retry-After: 7\r\n"
	    "Connection: close\r\n"
	    "\r\n"
	    "503 Service Unavailable\n\n"
	    "queue_full: All places are taken and the queue is full.\n");
}
END_TEST

START_TEST(an_answer_to_head_has_no_body)
{
	struct reply r = usual;
	struct head h;

	r.head = true;
	struct str text = failure_text(&r);
	ck_assert(str_ends(text, STR("\r\n\r\n")));
	ck_assert_int_eq(read_response(text, &h), FAIL_NONE);
	ck_assert_ptr_nonnull(head_first(&h, FIELD_CONTENT_LENGTH));
}
END_TEST

/* Each failure that is told, read again by our own parser. */
START_TEST(every_failure_is_a_well_formed_response)
{
	struct reply r = usual;
	struct framing f;
	struct head h;

	r.why = (enum failure)_i;
	if (failure_row(r.why)->status == 0)
		return;
	struct str text = failure_text(&r);
	ck_assert_int_eq(read_response(text, &h), FAIL_NONE);
	ck_assert_int_eq(h.status, failure_row(r.why)->status);
	ck_assert_uint_gt(h.reason.len, 0);
	ck_assert_int_eq(framing_of_response(&h, METHOD_GET, &f), FAIL_NONE);
	ck_assert_int_eq(f.kind, FRAMING_LENGTH);
	ck_assert_uint_eq(f.length, text.len - h.length);
	ck_assert(!h.close && !h.keep_alive);
	ck_assert_ptr_nonnull(head_first(&h, FIELD_DATE));
}
END_TEST

START_TEST(connection_and_allow_are_said_when_asked_for)
{
	struct reply r = usual;
	struct head h;

	r.why = FAIL_METHOD_NOT_ALLOWED;
	r.allow = "GET, HEAD";
	r.keep_alive = true;
	ck_assert_int_eq(read_response(failure_text(&r), &h), FAIL_NONE);
	ck_assert(h.keep_alive && !h.close);
	bool found = false;
	for (unsigned i = 0; i < h.count; i++)
		found |= str_equal(field_name(&h, &h.fields[i]), STR("Allow"));
	ck_assert(found);
	r.close = true;
	ck_assert_int_eq(read_response(failure_text(&r), &h), FAIL_NONE);
	ck_assert(h.close && !h.keep_alive);
}
END_TEST

static bool
contains(struct str text, const char *part)
{
	return memmem(text.at, text.len, part, strlen(part)) != NULL;
}

/* Row 251: a token where it is one, else a string. */
START_TEST(proxy_status_is_a_structured_field)
{
	struct reply r = usual;

	r.via = "proxy.example:8080";
	ck_assert(contains(failure_text(&r),
	    "Proxy-Status: proxy.example:8080; error="));
	r.via = "127.0.0.1";
	ck_assert(contains(failure_text(&r),
	    "Proxy-Status: \"127.0.0.1\"; error="));
	r.via = "a \"b\\\x01";
	ck_assert(contains(failure_text(&r),
	    "Proxy-Status: \"a \\\"b\\\\?\"; error="));
}
END_TEST

START_TEST(a_tunnel_begins_after_an_empty_line)
{
	char text[200];
	struct out o;

	out_init(&o, text, sizeof text);
	reply_connected(&o, "penstock", NOW);
	same_text(out_text(&o), "HTTP/1.1 200 OK\r\nDate: " NOW "\r\n"
	    "Via: 1.1 penstock\r\n\r\n");
}
END_TEST

START_TEST(options_are_answered_without_a_body)
{
	struct reply r = usual;
	char text[200];
	struct out o;

	r.allow = "GET";
	r.close = true;
	out_init(&o, text, sizeof text);
	reply_options(&o, &r);
	same_text(out_text(&o), "HTTP/1.1 200 OK\r\nDate: " NOW "\r\n"
	    "Allow: GET\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}
END_TEST

/* RFC 9209, 2.3; 4: any of that class; 0: whatever fits. */
static const struct {
	const char	*error;
	int		 status;
} recommended[] = {
	{ "dns_timeout", 504 },
	{ "dns_error", 502 },
	{ "destination_not_found", 500 },
	{ "destination_unavailable", 503 },
	{ "destination_ip_prohibited", 502 },
	{ "destination_ip_unroutable", 502 },
	{ "connection_refused", 502 },
	{ "connection_terminated", 502 },
	{ "connection_timeout", 504 },
	{ "connection_read_timeout", 504 },
	{ "connection_write_timeout", 504 },
	{ "connection_limit_reached", 503 },
	{ "http_request_error", 4 },
	{ "http_request_denied", 403 },
	{ "http_response_incomplete", 502 },
	{ "http_response_header_section_size", 502 },
	{ "http_response_timeout", 504 },
	{ "http_upgrade_failed", 502 },
	{ "http_protocol_error", 502 },
	{ "proxy_internal_response", 0 },
	{ "proxy_internal_error", 500 },
	{ "proxy_configuration_error", 500 },
	{ "proxy_loop_detected", 502 },
};

/* The manual says why these have another. */
static bool
is_exception(enum failure why)
{
	return why == FAIL_DESTINATION_DENIED || why == FAIL_NO_ROUTE ||
	    why == FAIL_LOOP_DETECTED;
}

START_TEST(an_error_has_the_status_that_is_recommended)
{
	const struct failure_row *row = failure_row((enum failure)_i);
	int status = -1;

	for (unsigned i = 0; i < ARRAY_LEN(recommended); i++) {
		if (strcmp(row->error, recommended[i].error) == 0)
			status = recommended[i].status;
	}
	if (row->status == 0) {
		ck_assert_str_eq(row->error, "");
		return;
	}
	ck_assert_msg(status != -1, "%s", row->error);
	bool same = status == 0 || status == row->status ||
	    status == row->status / 100;
	ck_assert_msg(same == !is_exception((enum failure)_i), "%s: %d",
	    row->token, row->status);
}
END_TEST

START_TEST(a_reply_that_does_not_fit_says_so)
{
	char text[100];
	struct out o;

	out_init(&o, text, sizeof text);
	reply_failure(&o, &usual);
	ck_assert(out_is_full(&o));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("http/reply");
	TCase *t = tcase_create("reply");

	suite_add_tcase(s, t);
	tcase_add_test(t, a_failure_says_its_reason_three_times);
	tcase_add_test(t, an_answer_to_head_has_no_body);
	tcase_add_loop_test(t, every_failure_is_a_well_formed_response,
	    FAIL_NONE + 1, FAIL_COUNT);
	tcase_add_loop_test(t, an_error_has_the_status_that_is_recommended,
	    FAIL_NONE + 1, FAIL_COUNT);
	tcase_add_test(t, connection_and_allow_are_said_when_asked_for);
	tcase_add_test(t, proxy_status_is_a_structured_field);
	tcase_add_test(t, a_tunnel_begins_after_an_empty_line);
	tcase_add_test(t, options_are_answered_without_a_body);
	tcase_add_test(t, a_reply_that_does_not_fit_says_so);
	return run_suite(s);
}
