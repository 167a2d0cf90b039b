/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_head.c - lists, tokens, copies; and the phrases of status codes.
 */
#include "http/head.h"

#include "http/heads.h"
#include "http/status.h"

static const struct {
	const char	*list;
	const char	*elements;	/* each with a bar after it */
} lists[] = {
	{ "", "" },
	{ ",", "" },
	{ " ,\t, ,", "" },
	{ "a", "a|" },
	{ ", a ,b,,c d,", "a|b|c d|" },
	{ "\"a,b\", c", "\"a,b\"|c|" },
	{ "for=\"a\\\", for=evil\", b", "for=\"a\\\", for=evil\"|b|" },
	{ "a, \"b, c", "a|\"b, c|" },
	{ "a, \"b\\", "a|\"b\\|" },
	{ "a=\"\",b", "a=\"\"|b|" },
};

START_TEST(a_list_has_elements_between_its_commas)
{
	char text[200];
	struct out o;
	char *copy = malloc(strlen(lists[_i].list) + 1);
	struct str rest = str_make(copy, strlen(lists[_i].list)), element;

	memcpy(copy, lists[_i].list, rest.len);
	out_init(&o, text, sizeof text);
	while (list_next(&rest, &element)) {
		ck_assert_uint_gt(element.len, 0);
		out_str(&o, element);
		out_char(&o, '|');
	}
	same_text(out_text(&o), lists[_i].elements);
	ck_assert(!list_next(&rest, &element));
	free(copy);
}
END_TEST

START_TEST(protocols_are_those_of_upgrade_without_h2c)
{
	struct str rest = STR("h2c, a/1, H2C , h2c-14, a b, /1, a/, b, "
	    "\"c, h2c"), protocol;

	ck_assert(upgrade_next(&rest, &protocol));
	same_text(protocol, "a/1");
	ck_assert(upgrade_next(&rest, &protocol));
	same_text(protocol, "b");
	ck_assert(!upgrade_next(&rest, &protocol));
}
END_TEST

START_TEST(a_token_is_found_in_any_line_of_its_field)
{
	struct head h;

	good_request(GET "Expect: a, b\r\nX: c\r\nExpect: , C\r\n\r\n", &h);
	ck_assert(head_has_token(&h, FIELD_EXPECT, "a"));
	ck_assert(head_has_token(&h, FIELD_EXPECT, "B"));
	ck_assert(head_has_token(&h, FIELD_EXPECT, "c"));
	ck_assert(!head_has_token(&h, FIELD_EXPECT, "a, b"));
	ck_assert(!head_has_token(&h, FIELD_EXPECT, ""));
	ck_assert(!head_has_token(&h, FIELD_VIA, "a"));
}
END_TEST

START_TEST(some_authentication_is_of_the_connection)
{
	struct head h;

	good_request(GET "Authorization: NTLM TlRM\r\n\r\n", &h);
	ck_assert(head_binds_connection(&h));
	good_request(GET "authorization: negotiate YII=\r\n\r\n", &h);
	ck_assert(head_binds_connection(&h));
	good_request(GET "Authorization: NTLM\tTlRM\r\n\r\n", &h);
	ck_assert(head_binds_connection(&h));
	good_request(GET "Authorization: Basic NTLM\r\n\r\n", &h);
	ck_assert(!head_binds_connection(&h));
	good_request(GET "Authorization: NTLMv2 x\r\nX: NTLM\r\n\r\n", &h);
	ck_assert(!head_binds_connection(&h));
}
END_TEST

START_TEST(a_copy_lives_without_what_it_was_made_from)
{
	char text[] = GET "X: y\r\nVia: z\r\n\r\n";
	struct head h;

	good_request(text, &h);
	size_t size = head_copy_size(&h);
	void *mem = malloc(size);
	head_copy(&h, mem);
	memset(text, '!', sizeof text);
	struct head other;
	good_request("PUT /b HTTP/1.0\r\nA: b\r\n\r\n", &other);

	same_text(head_str(&h, h.target), "/");
	ck_assert_uint_eq(h.count, 3);
	same_text(field_value(&h, head_first(&h, FIELD_VIA)), "z");
	same_text(field_name(&h, &h.fields[1]), "X");
	same_text(str_make(h.base, h.length), GET "X: y\r\nVia: z\r\n\r\n");
	free(mem);
}
END_TEST

START_TEST(a_head_without_fields_is_copied_too)
{
	struct head h;

	good_response("HTTP/1.1 204 x\r\n\r\n", &h);
	void *mem = malloc(head_copy_size(&h));
	head_copy(&h, mem);
	same_text(head_str(&h, h.reason), "x");
	free(mem);
}
END_TEST

START_TEST(methods_are_idempotent_as_registered)
{
	static const enum method idempotent[] = { METHOD_GET, METHOD_HEAD,
	    METHOD_PUT, METHOD_DELETE, METHOD_OPTIONS, METHOD_TRACE };
	static const enum method others[] = { METHOD_NONE, METHOD_POST,
	    METHOD_CONNECT, METHOD_PATCH, METHOD_LOCK };

	for (size_t i = 0; i < ARRAY_LEN(idempotent); i++)
		ck_assert(method_is_idempotent(idempotent[i]));
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		ck_assert(!method_is_idempotent(others[i]));
	same_text(method_name(METHOD_MSEARCH), "M-SEARCH");
	same_text(method_name(METHOD_NONE), "");
}
END_TEST

START_TEST(every_failure_has_a_status_with_a_phrase)
{
	for (unsigned why = FAIL_NONE; why < FAIL_COUNT; why++) {
		int status = failure_row(why)->status;
		ck_assert_msg(status == 0 || status_reason(status)[0] != '\0',
		    "%d", status);
	}
	ck_assert_str_eq(status_reason(404), "Not Found");
	ck_assert_str_eq(status_reason(299), "");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("http/head");
	TCase *t = tcase_create("head");

	suite_add_tcase(s, t);
	tcase_add_loop_test(t, a_list_has_elements_between_its_commas, 0,
	    ARRAY_LEN(lists));
	tcase_add_test(t, protocols_are_those_of_upgrade_without_h2c);
	tcase_add_test(t, a_token_is_found_in_any_line_of_its_field);
	tcase_add_test(t, some_authentication_is_of_the_connection);
	tcase_add_test(t, a_copy_lives_without_what_it_was_made_from);
	tcase_add_test(t, a_head_without_fields_is_copied_too);
	tcase_add_test(t, methods_are_idempotent_as_registered);
	tcase_add_test(t, every_failure_has_a_status_with_a_phrase);
	return run_suite(s);
}
